"""One classifier measured: its answers, its speed, its memory."""
