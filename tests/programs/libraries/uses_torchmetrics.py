# torchmetrics: accuracy, mean squared error and F1 over two batches
import torch
import torchmetrics

accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
accuracy.update(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1]))
accuracy.update(torch.tensor([0]), torch.tensor([0]))
assert abs(accuracy.compute().item() - 0.75) < 1e-6
error = torchmetrics.MeanSquaredError()
assert error(torch.ones(4), torch.zeros(4)).item() == 1
f1 = torchmetrics.functional.f1_score(torch.tensor([1, 0, 1]), torch.tensor([1, 1, 1]), task="binary")
assert abs(f1.item() - 0.8) < 1e-6
