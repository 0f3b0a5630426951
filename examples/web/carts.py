"""A web service over a store of streams: a place for its lifetime, a dependency, ETags that are tokens.

EPOCHAL_STREAMS=epochal-dev-streams uvicorn examples.web.carts:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from pydantic import BaseModel

from epochal import ANY, ConflictError, json_codec, metadata, open_streams
from epochal.aio.stores import AsyncPlace, AsyncStreams
from epochal.model.versions import ExpectedVersion, parse_token


class Added(BaseModel):
    """An item was put into the cart."""

    sku: str
    pieces: int = 1


CODEC = json_codec(Added)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One place for as long as the service runs: its connections are shared by all requests."""
    async with AsyncPlace() as place:
        app.state.streams = AsyncStreams(open_streams(os.environ["EPOCHAL_STREAMS"], place=place))
        yield


def streams(request: Request) -> AsyncStreams:
    """The store, for whatever operation asks for it."""
    found: AsyncStreams = request.app.state.streams
    return found


Store = Annotated[AsyncStreams, Depends(streams)]
app = FastAPI(lifespan=lifespan)


@app.post("/carts/{cart}/items", status_code=201)
async def add(
    *,
    cart: str,
    added: Added,
    store: Store,
    response: Response,
    if_match: Annotated[str | None, Header()] = None,
    x_user: Annotated[str, Header()] = "nobody",
) -> dict[str, int]:
    """Append an event; with `If-Match` only to the cart that the caller has seen."""
    expected: ExpectedVersion = ANY if if_match is None else parse_token(if_match.strip('"'))
    try:
        with metadata(user=x_user):
            appended = await store.append(f"Cart-{cart}", [CODEC.encode(added)], expected=expected)
    except ConflictError as conflict:
        raise HTTPException(412, str(conflict)) from conflict
    response.headers["ETag"] = f'"{appended.token.text()}"'
    return {"version": appended.version}


@app.get("/carts/{cart}")
async def show(cart: str, store: Store, response: Response) -> dict[str, int]:
    """Pieces by item, and the ETag to add more on."""
    state = await store.load(f"Cart-{cart}", since=0)
    if state is None:
        raise HTTPException(404, "no such cart")
    pieces: dict[str, int] = {}
    for event in state.events:
        match CODEC.read(event):
            case Added(sku=sku, pieces=more):
                pieces[sku] = pieces.get(sku, 0) + more
            case None:
                pass
    response.headers["ETag"] = f'"{state.token.text()}"'
    return pieces
