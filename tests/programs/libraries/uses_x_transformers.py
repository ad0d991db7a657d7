# x-transformers: a decoder's loss and its gradient
import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, rotary_pos_emb=True)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=20, max_seq_len=8, attn_layers=layers))
loss = model(torch.randint(0, 20, (2, 8)))
loss.backward()
assert loss.item() > 0
