(* Reads cases, one a line, and prints who is served in each round: "agent:arm:trial .. agent:arm:award".
   A case: pulls draws threshold fresh lot rounds agents, the order, what every agent's draws hold (draws + 1 each),
   and the coins of all tests, slot by slot. *)
let () =
  try
    while true do
      let numbers = Array.of_list (List.map int_of_string (String.split_on_char ' ' (input_line stdin))) in
      let at k = numbers.(k) in
      let pulls, draws, agents = at 0, at 1, at 6 in
      let order = Array.to_list (Array.sub numbers 7 agents) in
      let holds agent draw = at (7 + agents + agent * (draws + 1) + draw) in
      let coin slot pull = at (7 + agents + agents * (draws + 1) + slot * pulls + pull) = 1 in
      let serve = Loop_that_runs.serve pulls draws (at 2) (at 3 = 1) order (at 4) coin in
      let served = Loop_that_runs.served pulls draws (at 2) (at 3 = 1) order (at 4) coin holds in
      let shown round =
        let agent, arm = served round in
        Printf.sprintf "%d:%d:%s" agent arm (if snd (serve round) = None then "award" else "trial") in
      print_endline (String.concat " " (List.init (at 5) shown))
    done
  with End_of_file -> ()
