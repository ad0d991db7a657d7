"""Names of PyTorch's tracing of tensors that libraries import."""
