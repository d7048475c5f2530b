"""Read a torch network that was trained on standardised features; needs torch."""

import torch

from milp_recourse.readers import read_torch, standardised, to_json

layer = torch.nn.Linear(2, 1)
with torch.no_grad():
    layer.weight.copy_(torch.tensor([[1.5, -0.5]]))
    layer.bias.copy_(torch.tensor([0.25]))

network = read_torch(torch.nn.Sequential(layer, torch.nn.Sigmoid()))  # a probability of 1/2 is a logit of 0
raw = standardised(network, mean=[40.0, 10.0], sd=[20.0, 5.0])  # takes raw features; deploy this network
print(to_json(raw))
