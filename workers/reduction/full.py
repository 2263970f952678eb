"""What a person is told where a conversation does not fit: how large it is, what of it can never be left out, what to
do. Pure."""

from __future__ import annotations

from workers.reduction.sizes import Sizes


def of_floor(sizes: Sizes, model: str, window: int) -> str | None:
    """Where tools and system prompt alone are at the threshold: nothing that is said or left out changes that."""
    if sizes.floor < sizes.room:
        return None
    share = round(100 * sizes.floor / window)
    return (
        f"tools and system prompt alone take {share} % of the window of {model}: give this work fewer tools or shorter "
        f"context files, or a model with a larger window"
    )


def sentence(sizes: Sizes, model: str, window: int) -> str:
    """Why the turn cannot go on."""
    floor = of_floor(sizes, model, window)
    needs = f"the conversation needs about {sizes.prompt} tokens and the window of {model} is {window}"
    return (
        f"{needs}; {floor}" if floor else f"{needs}: go on in a new session, or with a model that has a larger window"
    )
