"""Verbs that write and try a plugin."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import log, print_json
from regardant.cli.options import AsJson, app


@app.command()
def new(
    part: Annotated[str, typer.Argument(metavar="PART", help="The part to add: attention.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the module and of the kind in recipes.")],
) -> None:
    """Write a plugin that adds a part. Writes a working module and its test; change the formula, then run
    `regardant try`.

    Examples:
        regardant new attention my_attention
    """
    from regardant.config.plugins import write_plugin

    module, test = write_plugin(part, name, Path())
    print(f"wrote {module}: a mechanism that works; change compute_scores")
    print(f"wrote {test}: run it with pytest {test}")
    print(f"try it:   regardant try {module}")
    print(
        f"train it: regardant --plugin {name} train demo --set model.encoder.self_attention.kind={name} "
        f"--out runs/{name}"
    )


@app.command("try")
def try_mechanism(
    module: Annotated[Path, typer.Argument(metavar="FILE", help="The module of your mechanism.")],
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of seeds, each with two runs.")] = 3,
    minutes: Annotated[
        float,
        typer.Option(min=0.05, metavar="M", help="Minutes to train a baseline run; yours gets as many updates."),
    ] = 1.0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the runs. [default: runs/try/MODULE]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try an attention mechanism of your own. Checks all contracts, then trains the demo with the mechanism and without
    it from several seeds, and compares the scores. Run the same command again to resume. If you change the module, its
    runs are trained again; those of the baseline are kept. The exit code is 1 if a contract is broken.

    Examples:
        regardant try my_attention.py
        regardant try my_attention.py --seeds 5 --minutes 2
    """
    from regardant.config.plugins import plugin_module

    plugin_module(module)  # before torch is imported
    log(f"checking the contracts of attention for {module}")
    from regardant.studies.trial import Interrupted, Trial, expected_minutes

    trial = Trial.of(module, out)
    contracts = trial.contracts()
    for line in contracts.lines():
        log(line)
    if contracts.broken:
        raise typer.Exit(1)
    trial.places()
    log(f"about {expected_minutes(seeds, minutes):.0f} minutes; Ctrl-C saves a checkpoint, the same command resumes")
    try:
        report, page = trial.train(seeds, minutes, log)
    except Interrupted:
        log(f"stopped and saved in {trial.folder}; run the same command again to resume")
        raise typer.Exit(130) from None
    if as_json:
        print_json(report.as_dict())
    else:
        print("\n".join(report.lines()))
    log(f"open {page} in a browser to see each seed")
