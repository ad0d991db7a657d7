# pytorch-lightning: a Trainer that fits, and goes on from a checkpoint
import tempfile

import pytorch_lightning as pl
import torch


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, number):
        return (self.layer(batch[0]) - batch[1]).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size=4)
with tempfile.TemporaryDirectory() as folder:
    options = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "default_root_dir": folder}
    trainer = pl.Trainer(max_epochs=1, **options)
    trainer.fit(Model(), data)
    trainer.save_checkpoint(folder + "/x.ckpt")
    again = pl.Trainer(max_epochs=2, **options)
    again.fit(Model(), data, ckpt_path=folder + "/x.ckpt")
assert again.global_step == 4
