# vit-pytorch: a vision transformer and one with convolutions, trained for some steps
import torch
from vit_pytorch import ViT
from vit_pytorch.cct import CCT

torch.manual_seed(0)
images, labels = torch.rand(6, 3, 16, 16), torch.tensor([0, 1, 2, 0, 1, 2])
plain = ViT(image_size=16, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=16)
convolutional = CCT(
    img_size=16, embedding_dim=16, n_conv_layers=1, kernel_size=3, stride=2, padding=1, pooling_kernel_size=3,
    pooling_stride=2, pooling_padding=1, num_layers=1, num_heads=2, num_classes=3, positional_embedding="learnable",
)  # fmt: skip
for model in (plain, convolutional):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
