"""What a mistake does: where it shows, by how much, and which cases it leaves alone."""
