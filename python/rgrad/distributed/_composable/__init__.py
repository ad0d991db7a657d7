"""PyTorch's older place of ``fully_shard``: ``_composable.fsdp``."""
