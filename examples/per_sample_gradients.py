"""The gradient of the loss for each example of a batch, in one pass.

.venv/bin/python examples/per_sample_gradients.py [--batch 64]

A backward pass gives the gradient of the mean loss. Which examples pull, and how hard (to find wrong labels, or to
limit what one example can do as differential privacy asks), only the gradients of single examples tell:
`vmap(grad(loss))`.
"""

import argparse
import time

import rgrad
from rgrad.func import functional_call, grad, vmap


def train(batch):
    """A network that has begun to learn, and the batch; the label of its first example is wrong."""
    rgrad.manual_seed(0)
    model = rgrad.nn.Sequential(rgrad.nn.Linear(20, 32), rgrad.nn.Tanh(), rgrad.nn.Linear(32, 2))
    x = rgrad.randn(batch, 20)
    x[:, 0] += 2 * x[:, 0].sign()
    labels = (x[:, 0] > 0).long()
    labels[0] = 1 - labels[0]  # this label is wrong

    optimizer = rgrad.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        optimizer.zero_grad()
        loss = rgrad.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
    return model, x, labels


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    batch = parser.parse_args(argv).batch
    if batch < 2:
        parser.error(f"--batch must be at least 2, got {batch}")

    model, x, labels = train(batch)
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss_of_one(weights, x, label):
        return rgrad.nn.functional.cross_entropy(functional_call(model, weights, (x,)), label)

    start = time.perf_counter()
    per_sample = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(weights, x, labels)
    together = time.perf_counter() - start

    start = time.perf_counter()
    one_by_one = [grad(loss_of_one)(weights, x[i], labels[i]) for i in range(batch)]
    loop = time.perf_counter() - start

    for name, value in per_sample.items():
        expected = rgrad.stack([gradients[name] for gradients in one_by_one])
        assert rgrad.allclose(value, expected, rtol=1e-4, atol=1e-6), name
        print(f"{name:10} {tuple(value.shape)}")
    print(f"one pass {together * 1e3:.1f} ms, a loop over the batch {loop * 1e3:.1f} ms")

    norms = sum(g.flatten(1).square().sum(1) for g in per_sample.values()).sqrt()
    print(
        f"largest gradient: example {norms.argmax().item()}, norm {norms.max().item():.4f}; median "
        f"{norms.median().item():.4f}"
    )

    # What differential privacy does with them: each is limited to norm 1 before they are averaged.
    factor = (1.0 / norms).clamp(max=1.0)
    limited = {name: rgrad.einsum("b,b...->...", factor, g) / batch for name, g in per_sample.items()}
    total = sum(g.square().sum() for g in limited.values()).sqrt().item()
    assert total <= 1.0
    print(f"norm of the mean of the limited gradients: {total:.4f}")


if __name__ == "__main__":
    main()
