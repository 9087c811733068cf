from torch import nn

model = nn.Linear(8, 2)
average = {name: value.clone() for name, value in model.state_dict().items()}
model.to("cuda")
for name, value in model.state_dict().items():
    average[name].lerp_(value, 0.1)
