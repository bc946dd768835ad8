"""Every format, and all words: a file for each."""
