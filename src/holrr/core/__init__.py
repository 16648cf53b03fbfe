"""Mathematics of the fits: moments, whitened problems, approximations and Tucker tensors."""
