# pytorch-ignite: an engine that trains
import torch
from ignite.engine import Events, create_supervised_trainer

model, seen = torch.nn.Linear(2, 1), []
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.MSELoss())
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: seen.append(engine.state.epoch))
trainer.run([(torch.randn(4, 2), torch.randn(4, 1))] * 3, max_epochs=2)
assert seen == [1, 2]
