(* The loop as an OCaml program, for bridge.ml. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt.
From Cloneproof Require Import serve.
Extraction "loop_that_runs.ml" serve.serve serve.served.
