"""A program for PyTorch's FSDP2, as its users write them: test_ranks.py and tests/oracle run it as it is."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocab: int = 37, dim: int = 24, depth: int = 3, heads: int = 4, length: int = 16) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.layers = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tok(tokens) + self.pos(torch.arange(tokens.size(1), device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class AppState(Stateful):
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optim = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optim}

    def load_state_dict(self, state_dict):
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state_dict["model"], optim_state_dict=state_dict["optim"]
        )


def build(mesh, seed: int):
    torch.manual_seed(seed)
    model = Transformer()
    # torch.manual_seed draws other numbers in other libraries, so weights come from a formula.
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            n = torch.arange(p.numel(), dtype=torch.float64)
            p.copy_((0.2 * torch.sin(n * 0.37 + i + seed) + (1.0 if p.dim() == 1 else 0.0)).view_as(p))
    policy = MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    return model, optimizer


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    model, optimizer = build(mesh, seed=0)
    assert isinstance(model, FSDPModule)
    for param in model.parameters():
        assert isinstance(param, DTensor)
        assert param.placements == (Shard(0),)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))

    def steps(model, optimizer, scheduler, first: int, last: int) -> None:
        for step in range(first, last):
            n = torch.arange(8 * 17).view(8, 17)
            tokens = ((n * (step + 3) + n // 5) % 37).chunk(world)[rank]
            model.set_requires_gradient_sync(False)
            half = tokens.size(0) // 2
            total = torch.zeros(())
            optimizer.zero_grad(set_to_none=True)
            for i, part in enumerate((tokens[:half], tokens[half:])):
                if i == 1:
                    model.set_requires_gradient_sync(True)
                logits = model(part[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()) / 2
                loss.backward()
                total += loss.detach()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            if isinstance(norm, DTensor):
                norm = norm.full_tensor()
            optimizer.step()
            scheduler.step()
            dist.all_reduce(total, op=dist.ReduceOp.SUM)
            if rank == 0:
                print(f"step {step} loss {total.item() / world:.8f} norm {norm.item():.6f}", flush=True)

    steps(model, optimizer, scheduler, 0, 4)
    folder = sys.argv[1]
    dcp.save({"app": AppState(model, optimizer), "step": 4}, checkpoint_id=folder)
    model, optimizer = build(mesh, seed=1)
    state = {"app": AppState(model, optimizer), "step": 0}
    dcp.load(state, checkpoint_id=folder)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    steps(model, optimizer, scheduler, state["step"], 6)
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        print(f"sum {sum(v.double().abs().sum() for v in full.values()).item():.6f}", flush=True)
    else:
        assert not full
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
