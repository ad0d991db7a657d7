# opt_einsum: a contraction of three tensors
import opt_einsum
import torch

a, b, c = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4, 5)
torch.testing.assert_close(opt_einsum.contract("ij,jk,kl->il", a, b, c), a @ b @ c)
