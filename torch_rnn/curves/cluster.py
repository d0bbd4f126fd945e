"""A sweep on a Dask cluster: the same rows, made by workers that need this package but neither file nor disk of ours.

The tasks go to Dask's own client, not through joblib's backend for Dask. That one survives a worker that is killed, but
what it submits and does not come back as a result it never reports: where a run kills each worker that takes it,
or a worker cannot import the package, joblib 1.6 waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

from distributed import Client, Future, Security, as_completed
from distributed.comm.core import connect as connect_to

from numpy_rnn.tasks import Task
from torch_rnn.curves.sweep import Lost, Made, Make, Planned, Row, failed, make_row
from torch_rnn.version import versions

PATIENCE = 5  # seconds to wait for a scheduler, and for its first worker


def connect(address: str) -> Client:
    """Return a client of the scheduler at ``address``, whose workers have the same versions as this process.

    Raises ``Lost``.
    """
    try:
        asyncio.run(_knock(address))
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Lost(f"no scheduler answers at {address}") from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        theirs = client.run(versions, on_error="return")
        for worker, found in theirs.items():
            if isinstance(found, Exception):
                raise Lost(f"the worker {worker} cannot run rnn-parity: {found}")
            if found != versions():
                raise Lost(f"the worker {worker} has {_listed(found)}, expected {_listed(versions())}")
    except TimeoutError as error:
        client.close()
        raise Lost(f"the scheduler at {address} has no worker") from error
    except Lost:
        client.close()
        raise
    return client


async def _knock(address: str) -> None:
    """Raise ``OSError`` or ``ValueError`` unless a scheduler answers.

    A client that finds none raises as it is made, so that nobody can close it; it complains at the end of the process.
    """
    comm = await connect_to(address, timeout=PATIENCE, **Security().get_connection_args("client"))
    await comm.close()


def on_cluster(client: Client) -> Make:
    """Return what makes runs on a cluster. A worker that is lost costs time only: its runs are made by another."""

    def make(wanted: Sequence[Planned]) -> Made:
        # A task whose result is the data, not scattered data: when the worker that holds it is lost, it is made again.
        data = {task: client.submit(_itself, task, pure=False) for task in {run.task for run in wanted}}
        places = {client.submit(make_row, run.settings, data[run.task], pure=False): run for run in wanted}
        finished = as_completed(list(places), loop=client.loop, with_results=True, raise_errors=False)
        try:
            for future, result in finished:
                yield places[future], _row(places[future], future, result)
        finally:
            client.cancel(list(places))

    return make


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _itself(task: Task) -> Task:  # pragma: no cover - in a worker, whose process is not measured
    return task


def _row(run: Planned, future: Future[object], result: object) -> Row:
    """Return a run's row from what its future came to."""
    if future.status == "finished":
        row = cast(Row, result)
        if row["versions"] == versions():
            return row
        return failed(run.settings, f"a worker has {_listed(row['versions'])}, expected {_listed(versions())}")
    if future.status == "error":
        _, error, _ = cast(tuple[type, Exception, object], result)
        return failed(run.settings, f"{type(error).__name__}: {error}")
    raise Lost("the scheduler is gone")
