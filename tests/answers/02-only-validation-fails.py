# %% right
def predict(self, interaction):
    return original(self, interaction).to(self.device)

# %% right written anew
def predict(self, interaction):
    user = interaction[self.USER_ID].cpu().numpy()
    item = interaction[self.ITEM_ID].cpu().numpy()
    scores = self.interaction_matrix[user, :].multiply(self.item_similarity[:, item].T).sum(axis=1).getA1()
    return torch.tensor(scores, device=self.device)

# %% wrong scores of its own
def predict(self, interaction):
    return torch.rand(len(interaction), device=self.device)

# %% wrong moved, and not given back
def predict(self, interaction):
    scores = original(self, interaction)
    scores.to(self.device)
    return scores

# %% wrong nothing given back
def predict(self, interaction):
    original(self, interaction).to(self.device)
