import gymnasium
import torch

torch.manual_seed(0)
env = gymnasium.make("CartPole-v1")
env.action_space.seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(3):
    state, _ = env.reset(seed=episode)
    logs, rewards, done = [], [], False
    while not done and len(rewards) < 50:
        chosen = torch.distributions.Categorical(logits=policy(torch.as_tensor(state)))
        action = chosen.sample()
        state, reward, ended, cut, _ = env.step(int(action))
        logs.append(chosen.log_prob(action))
        rewards.append(float(reward))
        done = ended or cut
    loss = -torch.stack(logs).sum() * sum(rewards)
    opt.zero_grad()
    loss.backward()
    opt.step()
