# kornia: blur, Sobel and a rotation of an image
import kornia
import torch

image = torch.rand(1, 3, 16, 16, requires_grad=True)
assert kornia.filters.gaussian_blur2d(image, (3, 3), (1.0, 1.0)).shape == image.shape
kornia.filters.sobel(image).sum().backward()
assert kornia.geometry.rotate(image, torch.tensor([30.0])).shape == image.shape
