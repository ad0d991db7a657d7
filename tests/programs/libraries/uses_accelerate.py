# accelerate: a training loop with accumulated gradients, and one that goes on from a saved state to the same weights
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed


def trained(folder, resume):
    set_seed(5)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    x = torch.randn(16, 2)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    before = model[0].weight.detach().clone()
    if resume:
        accelerator.load_state(folder)
    for epoch in range(resume, 3):
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward((model(x) - y).square().mean())
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        if epoch == 0:
            accelerator.save_state(folder)
    assert not torch.equal(before, model[0].weight)
    return accelerator.unwrap_model(model).state_dict()


with tempfile.TemporaryDirectory() as folder:
    whole, rest = trained(folder, 0), trained(folder, 1)
assert all(torch.equal(whole[name], rest[name]) for name in whole)
