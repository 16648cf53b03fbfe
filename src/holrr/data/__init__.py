"""The door: whatever a user has becomes checked arrays, or a source that is read in blocks."""
