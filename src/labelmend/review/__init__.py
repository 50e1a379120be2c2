"""A person decides the doubtful ones: a page on this machine, and a log of decisions in the run folder."""
