"""The proof that an exported file gives the answers, and has the accuracy, of the module that was trained."""
