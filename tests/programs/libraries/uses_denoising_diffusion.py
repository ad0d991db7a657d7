# denoising-diffusion-pytorch: the loss of a diffusion model, some steps of training, and an image sampled
import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet

torch.manual_seed(0)
unet = Unet(dim=8, dim_mults=(1, 2), channels=1, flash_attn=False)
model = GaussianDiffusion(unet, image_size=8, timesteps=20, sampling_timesteps=3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
images = torch.rand(8, 1, 8, 8)
losses = []
for _ in range(20):
    loss = model(images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert sum(losses[-5:]) < sum(losses[:5])
image = model.sample(batch_size=1)
assert image.shape == (1, 1, 8, 8)
assert image.isfinite().all()
