(* The loop and the pages as an OCaml program, for bridge.ml. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt.
From Cloneproof Require Import serve slate.
Extraction "loop_that_runs.ml" serve.serve serve.served slate.place slate.shown_draw.
