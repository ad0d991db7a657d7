# timm: a ResNet and a vision transformer, forward and backward
import timm
import torch

for name in ("resnet18", "vit_tiny_patch16_224"):
    model = timm.create_model(name, num_classes=4)
    model(torch.randn(1, 3, 224, 224)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
