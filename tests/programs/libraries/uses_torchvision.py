# torchvision: a ResNet trained for a step, and transforms (its C++ operators are not there)
import torch
import torchvision
from torchvision.transforms import v2

model = torchvision.models.resnet18(num_classes=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.nn.functional.cross_entropy(model(torch.randn(2, 3, 64, 64)), torch.tensor([0, 1])).backward()
optimizer.step()
image = torch.rand(3, 32, 32)
assert torchvision.transforms.Normalize([0.5] * 3, [0.5] * 3)(image).shape == image.shape
assert v2.Resize(16)(image).shape == (3, 16, 16)
