"""Table of all speed benchmarks, with measured values and targets.

    python benchmarks/table.py [--quick] [--repeats 15] [--threads 2] [--write]
    python benchmarks/table.py --gpu [--quick] [--repeats 15] [--write]

Each row is a ratio of two medians. The two functions, which are those of the other scripts, take
turns in one run. The second form needs torch with CUDA. --write also writes the tables to
docs/developer_benchmarks.md, including missed targets. The rows of searches.py have a table of
their own there. The script takes twenty minutes on two idle
cores, most of them for the searches. --quick uses a fraction of the samples and takes some seconds;
it only checks that every row can be measured.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator

from pages import parse_options, printed, table_lines, write_section

Row = tuple[str, float, float | None, float]

HEAD = "| | ours, ms | theirs, ms | ratio | asked | met |\n|:--|--:|--:|--:|--:|:-:|"


def cpu_rows(quick: bool, repeats: int, threads: int) -> Iterator[Row]:
    """Yield the rows of `linear`, `kernel` and `busy`."""
    from threadpoolctl import threadpool_limits

    import busy
    import kernel
    import linear

    warnings.filterwarnings("ignore", message="The best penalty")
    with threadpool_limits(threads):
        yield from linear.rows(quick, repeats)
        yield from kernel.rows(quick, max(1, repeats // 3))
    yield from busy.rows(quick, repeats)


def search_lines(quick: bool, repeats: int, threads: int) -> Iterator[str]:
    """Yield the lines of the table of `searches`."""
    from threadpoolctl import threadpool_limits

    import searches

    with threadpool_limits(threads):
        found = map(searches.cells, searches.rows(quick, max(1, repeats // 3)))
        yield from table_lines(searches.HEAD, found, "lrrrrc")


def gpu_rows(quick: bool, repeats: int) -> Iterator[Row]:
    import gpu

    return gpu.rows(quick, repeats)


def line(row: Row) -> str:
    """Return a row of the Markdown table; without a peer, the target is in seconds."""
    name, ours, theirs, asked = row
    found = ours if theirs is None else ours / theirs
    met = "yes" if found <= asked else "no"
    if theirs is None:
        return f"| {name} | {ours * 1e3:.2f} | | | {asked * 1e3:g} ms | {met} |"
    return f"| {name} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {found:.2f} | {asked:g} | {met} |"


def machine(gpu: bool, threads: int) -> str:
    """Return a description of the machine, the date, and the load before the run."""
    day = time.strftime("%Y-%m-%d %H:%M")
    if gpu:
        import torch

        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {day}"
    load = f", load average {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores, {threads} threads{load}, {day}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="the rows of a CUDA device")
    parser.add_argument("--quick", action="store_true", help="a fraction of the samples")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parse_options(parser, arguments)
    rows = (
        gpu_rows(args.quick, args.repeats)
        if args.gpu
        else cpu_rows(args.quick, args.repeats, args.threads)
    )
    text = printed([machine(args.gpu, args.threads), "", HEAD])
    text += printed(map(line, rows))
    if args.gpu:
        if args.write:
            write_section("speed on a GPU", text)
        return
    print()
    of_searches = printed(search_lines(args.quick, args.repeats, args.threads))
    if args.write:
        write_section("speed on cores", text)
        write_section("searches", of_searches)


if __name__ == "__main__":
    main()
