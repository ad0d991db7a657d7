# skorch: a classifier that fits and predicts
import numpy as np
import torch
from skorch import NeuralNetClassifier

net = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Softmax(-1)), max_epochs=2, lr=0.1, verbose=0
)
x, y = np.random.rand(40, 4).astype("float32"), np.arange(40) % 2
assert net.fit(x, y.astype("int64")).predict(x).shape == (40,)
