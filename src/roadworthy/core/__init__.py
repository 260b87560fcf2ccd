"""Values that every layer passes on."""
