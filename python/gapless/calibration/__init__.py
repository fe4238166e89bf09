"""`gapless calibrate`: what messages cost, measured into a profile."""
