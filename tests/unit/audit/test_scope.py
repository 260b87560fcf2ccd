"""How near real images are: of the predicted class, and never the image itself."""

import torch
from torch import nn

from roadworthy.audit.scope import Answers, answers, distances
from roadworthy.models.normalized import Normalized


def answered(ids, predicted, features):
    count = len(ids)
    return Answers(torch.tensor(ids), torch.tensor(predicted), torch.ones(count), torch.tensor(features))


def test_the_nearest_real_image_is_another_one_of_the_predicted_class():
    real = answered([0, 1, 2], [0, 0, 1], [[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    # image 0: image 1 is 5 away; image 2 is nearer, but of another class, and has none of its own
    assert distances(real, real).nan_to_num(-1).tolist() == [5, 5, -1]
    # imputed image 0 moved on to image 1 and is now said to be of class 1
    imputed = answered([0], [1], [[1.0, 2.0]])
    assert distances(imputed, real).tolist() == [2]


def test_features_are_what_the_last_linear_layer_gets():
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    images, ids = torch.rand(5, 1, 2, 2), torch.arange(5)
    found = answers(Normalized(network), ids, images, torch.device("cpu"))
    assert torch.allclose(found.features, network[:3](images))
    assert torch.allclose(found.confidence, network(images).softmax(dim=1).max(dim=1).values)
    assert not network[3]._forward_pre_hooks


def test_a_model_without_a_linear_layer_has_confidences_only():
    found = answers(
        Normalized(lambda images: images.flatten(1)[:, :2]),
        torch.arange(3),
        torch.rand(3, 1, 2, 2),
        torch.device("cpu"),
    )
    assert found.features.shape == (3, 0)
    assert distances(found, found).isnan().all()
