"""How the docstring of a function begins: with a verb in the imperative ("Return …"), not with "What" or "Returns"."""

from __future__ import annotations

import ast
import re

_VERBS = frozenset(
    """
    abort accept accumulate acknowledge act activate add adjust admit advance align allocate allow answer append apply
    approve arrange ask assemble assert assign associate assume attach attempt audit
    authenticate await back backfill begin
    bind block break bring build bump bundle cache calculate call cancel cap capture carry catch change charge check
    choose claim classify clean clear clip close collapse collect combine commit compact compare compile complete
    compose compress compute concatenate confirm connect consider construct consume contact continue convert copy
    correct count cover create cut deactivate decide declare decode decompress decorate decrypt define delay delegate
    delete deliver demand derive describe deserialize detect determine diff digest disable disconnect discard dispatch
    display distinguish divide do download drain draw drop dump duplicate edit embed emit empty enable encode encrypt
    end enforce ensure enter enumerate escape establish estimate evaluate examine exclude execute exit expand expect
    explain export expose extend extract fail feed fence fetch fill filter find finish fit fix flag flatten flush fold
    follow forbid force forget fork format forward free freeze gather generate get give go grant group grow guard
    guess halt hand handle hash have hide highlight hold identify ignore implement import include increase increment
    indent index infer inform inherit initialise initialize inject insert inspect install interpret interrupt
    intersect introduce invert invoke iterate join judge keep kill know label land launch lay lead leave lend let
    leverage lift limit link lint list listen load locate lock log look lose lower make manage map mark mask match
    measure merge migrate mock modify monitor mount move name narrate narrow negotiate normalise normalize note notify
    number observe obtain offer omit open operate order overwrite pack pad page paint parse pass patch pause perform
    permit pick pickle pin place plan play point poll populate post postpone prefer prefix prepare preserve press
    pretend prevent print probe proceed process produce prompt propagate protect prove provide prune publish pull
    purge push put query quote raise rank re-read reach react reap
    read rebuild recall receive reclaim recognise recognize
    record recover redirect reduce refer refresh refuse register rehearse
    reject relate relay release reload remember remove
    rename render renew reopen reorder repair repeat replace replay report request require reread reset reserve resolve
    respond restart restore restrict resume retain retrieve retry return reuse reveal reverse revert rewind rewrite
    roll rotate round route run sample save say scan schedule seal search see select send separate serialise serialize
    serve set settle shorten show shrink shut sign signal simulate skip sleep slice solve sort spawn specify spell
    spill split
    spread stamp stand start state stay step stop store stream strip subscribe substitute subtract suggest sum summarise
    summarize supply support suppress suspend swap switch sync tabulate take tally tear tell terminate test think
    throttle throw tie touch trace track transfer transform translate traverse treat trim truncate try turn type
    unescape undo unite unload unlock unpack unwrap update upgrade upload use validate verify view visit wait wake walk
    warn watch weigh widen withdraw wrap write yield zip
    """.split()  # noqa: SIM905 - a list of five hundred literals can't be read
)
"""Imperatives; one that a docstring begins with and that is missing is added."""


def is_imperative(docstring: str) -> bool:
    """Tell whether the first word is a verb in the imperative."""
    first = re.match(r"[A-Z][a-z]*(?:-[a-z]+)?(?![\w'])", docstring)
    return first is not None and first[0].lower() in _VERBS


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether it is read like a field, and so described by a noun."""
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
