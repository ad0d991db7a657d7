# diffusers: a step of training of a U-Net with a text's attention, saved and loaded, and an image sampled
import tempfile

import torch
from diffusers import DDIMScheduler, UNet2DConditionModel

torch.manual_seed(0)
model = UNet2DConditionModel(
    sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=6, attention_head_dim=4,
)  # fmt: skip
scheduler = DDIMScheduler(num_train_timesteps=50)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
clean, noise, text = torch.rand(4, 1, 8, 8), torch.randn(4, 1, 8, 8), torch.randn(4, 3, 6)
times = torch.tensor([1, 10, 20, 40])
losses = []
for _ in range(5):
    loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(clean, noise, times), times, text).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0]
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = UNet2DConditionModel.from_pretrained(folder)
for name, value in again.state_dict().items():
    assert torch.equal(value, model.state_dict()[name])
scheduler.set_timesteps(3)
image = torch.randn(1, 1, 8, 8)
with torch.no_grad():
    for time in scheduler.timesteps:
        image = scheduler.step(again(image, time, text[:1]).sample, time, image).prev_sample
assert image.shape == (1, 1, 8, 8)
assert image.isfinite().all()
