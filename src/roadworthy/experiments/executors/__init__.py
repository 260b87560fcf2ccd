"""Who does the work: this machine's processes, or a Ray cluster. The driver alone writes."""
