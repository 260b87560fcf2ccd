"""Does the benchmark rank right? On the images of a comparison, and in worlds whose answer is known."""
