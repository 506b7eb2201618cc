"""From images to the features of a frozen backbone, by any number of processes."""
