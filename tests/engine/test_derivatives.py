"""The product by seed of many units: what it is, and its first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd import grad, gradcheck, gradgradcheck

from oodbench.engine.derivatives import product_by_seed, relu_, sum_over_rows
from oodbench.engine.hidden_layer import output_behind_relu
from oodbench.engine.products import multiply_by_seed


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape) + shape[-1]))


def test_derivatives_are_those_of_the_products() -> None:
    matrices, columns, values = (draw(*shape).requires_grad_() for shape in ((2, 6, 3), (2, 3, 5), (2, 6, 5)))
    assert torch.equal(product_by_seed(matrices, columns), matrices @ columns)
    assert torch.allclose(sum_over_rows(values, columns), values @ columns.mT)
    for function, left in ((product_by_seed, matrices), (sum_over_rows, values)):
        assert gradcheck(function, (left, columns))
        assert gradgradcheck(function, (left, columns))


def test_relu_is_what_it_was_to_the_bit() -> None:
    values, slopes = draw(2, 6, 5).requires_grad_(), draw(2, 6, 5).requires_grad_()

    def derivatives(relu: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        positive = relu(values * 1)
        (gradient,) = grad((positive.square() * slopes).sum(), values, create_graph=True)
        return [positive, gradient, *grad(gradient.square().sum(), (values, slopes))]

    ours, usual = derivatives(relu_), derivatives(torch.Tensor.relu_)
    assert all(torch.equal(one, other) for one, other in zip(ours, usual, strict=True))


def test_many_units_have_the_derivative_of_few() -> None:
    columns, slopes = draw(2, 10, 64), draw(2, 60, 64)
    many = draw(6, 20, 10).requires_grad_()
    few = many.detach().requires_grad_()
    (multiply_by_seed(many, columns) * slopes).sum().backward()
    (few.reshape(2, 60, 10) @ columns * slopes).sum().backward()
    assert many.grad is not None
    assert few.grad is not None
    assert torch.allclose(many.grad, few.grad)


def test_an_output_behind_relu_is_what_two_layers_are() -> None:
    matrices, weights, bias, columns = draw(6, 4, 3), draw(6, 1, 4), draw(6, 1, 1), draw(2, 3, 5)
    parameters = tuple(parameter.requires_grad_() for parameter in (matrices, weights, bias))

    def ours(*parameters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        matrices, weights, bias = parameters
        return output_behind_relu(matrices, weights, bias, columns)

    output, hidden = ours(*parameters)
    usual = (matrices @ columns.repeat_interleave(3, 0)).relu()
    assert torch.allclose(hidden, usual)
    assert torch.allclose(output, weights @ usual + bias)
    for function in (ours, lambda *parameters: ours(*parameters)[0], lambda *parameters: ours(*parameters)[1]):
        assert gradcheck(function, parameters)
        assert gradgradcheck(function, parameters)
