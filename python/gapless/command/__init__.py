"""The command `gapless`: a file for each of its words."""
