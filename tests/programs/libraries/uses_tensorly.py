# tensorly: a decomposition of rank two
import tensorly as tl
import torch
from tensorly.decomposition import parafac

tl.set_backend("pytorch")
x = torch.einsum("ar,br,cr->abc", torch.rand(3, 2), torch.rand(4, 2), torch.rand(5, 2))
found = tl.cp_to_tensor(parafac(x, rank=2, n_iter_max=200, random_state=0))
assert (found - x).norm() < 0.1 * x.norm()
