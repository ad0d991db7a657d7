# geoopt: a step of Riemannian Adam on the Poincare ball
import geoopt
import torch

ball = geoopt.PoincareBall()
point = geoopt.ManifoldParameter(ball.random_normal(3, std=0.1), manifold=ball)
optimizer = geoopt.optim.RiemannianAdam([point], lr=0.1)
ball.dist(point, torch.zeros(3)).square().backward()
optimizer.step()
assert point.detach().norm() < 1
