#!/bin/sh
# Compile the proof, check it with Coq's independent checker, print the axioms and the theorem. Called by `make prove`.
set -eu
cd "$(dirname "$0")/.."
packages="coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics ocaml-nox"
files="serve scan levels counts loop own theorem corollaries weights segments mix slate slates flood ceiling"
needs="make prove needs Coq 8.16 with mathcomp 1.15 and its algebra tactics, and OCaml: apt-get install $packages"
for tool in coqc coqchk ocamlopt; do
    command -v $tool >/dev/null || { echo "$needs" >&2; exit 2; }
done
mkdir -p build/proof
cp proof/*.v build/proof/
cd build/proof
echo 'From mathcomp Require Import all_ssreflect all_algebra ring.' > libraries.v
coqc -w none libraries.v >/dev/null 2>&1 || { echo "$needs" >&2; exit 2; }
compile() {
    for file in "$@"; do coqc -w none -R . Cloneproof "$file.v"; done
}
compile serve slate
compile loop own flood ceiling &
beside=$!
compile scan levels counts mix
wait $beside
compile theorem corollaries
compile slates &
beside=$!
compile weights segments
wait $beside
echo "compiled: $(cat $(for file in $files; do echo $file.v; done) | wc -l) lines"
# Our modules are checked again; the libraries are taken as installed (without -norec they are checked too, for minutes).
coqchk -silent -R . Cloneproof $(for file in $files; do echo "-norec Cloneproof.$file"; done)
echo "coqchk: checked"
if grep -nwE 'Axiom|Admitted|admit|Parameter|Conjecture' *.v; then echo "not proven" >&2; exit 1; fi
coqc -w none -R . Cloneproof statement.v > statement.txt
theorems=$(grep -c '^  @' statement.v)
test "$(grep -c '^Closed under the global context' statement.txt)" = 1 || { cat statement.txt; exit 1; }
echo "axioms: none, in $theorems theorems"
sed -n '/---------- the statement/,/^End Market/p' theorem.v
grep -v '^Closed under the global context' statement.txt
sed -n '/^## The theorem in words/,/^## /p' ../../proof/README.md | sed '1d;$d'
