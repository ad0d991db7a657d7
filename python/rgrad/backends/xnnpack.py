"""The library XNNPACK, which is not used here."""

enabled: bool = False
