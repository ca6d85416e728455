"""Every statement of the paper, checked: one experiment a row, one page for all of them.

How to add a row: put a file into `paper/rows/`; nothing else is edited. `rows/theorem_9.py` is then run by
`cloneproof reproduce`, alone with `--only theorem-9`, and has its section on the page. It holds

    def run(setting: RowSetting) -> Findings:
        made = setting.mechanism("etc", arm_rounds=setting.pick(quick=10, full=100))   # every mechanism is made so
        ...
        return Findings(computed="..", checks=(..), tables=(..))

    ROW = Row(number=9, title="Theorem 9: ..", claim="Theorem 9: ..", run=run, summary={"confirmed": "Copies pay .."})

- `run` is pure: the same setting, the same findings to the last bit (no clock, no unseeded dice, no global state; with
  sampling, take `setting.seed`). Sizes come from `setting.pick(quick, full)`; both sizes make all of the row's checks.
- A check is one call, `claim("copies pay", above(gain), ("gain", gain))`: a statement, whether it holds, and the
  evidence. `above(gain)`, `at_most(gain)`, `agrees(estimate, expected)`, `all_of([..])` of `evidence` answer True,
  False, or None where the error bounds leave it open. `claim` is the statement proper, as the paper has it, `reading` a
  hedged remark that we had to make precise, `detail` what the paper says on the way, `ours` the corrected statement,
  `answer` what settles an open question. The verdict follows from the checks in `findings.verdict`, and nowhere else.
- The summary is the finding in one sentence, which the page shows while the section is folded; it is given for the
  verdict that it goes with, so that it cannot contradict the checks.
- Tables take text, whole numbers, floats and estimates.
- Show in `tests/paper/` that a broken mechanism, put in the good one's place with `RowSetting(make=..)`, changes the
  verdict.
"""
