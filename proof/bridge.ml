(* Reads cases, one a line, and prints who is served in each round: "agent:arm:trial .. agent:arm:award".
   A case: pulls draws threshold fresh rounds agents, the arms of each agent, the weight of each arm of each agent,
   64-bit words (one of each agent for the order, one for the lot, draws + 1 of each agent, one for each pull of each draw
   of each agent), and the rewards of all tests, slot by slot. What the loop takes as given is made of words here, and
   not taken from the session. *)
let () =
  try
    while true do
      let given = Array.of_list (String.split_on_char ' ' (input_line stdin)) in
      let number k = int_of_string given.(k) and word k = Int64.of_string ("0u" ^ given.(k)) in
      let uniform k = (Int64.to_float (Int64.shift_right_logical (word k) 12) +. 0.5) *. ldexp 1.0 (-52) in
      let pulls, draws, agents = number 0, number 1, number 5 in
      let arms = 6 in
      let before agent = List.fold_left (+) 0 (List.init agent (fun i -> number (arms + i))) in
      let weights = arms + agents in
      let orders = weights + before agents in
      let lots = orders + agents in
      let drawn = lots + 1 in
      let coins = drawn + agents * (draws + 1) in
      let rewards = coins + agents * draws * pulls in
      let by_word i j = Int64.unsigned_compare (word (orders + i)) (word (orders + j)) in
      let order = List.sort by_word (List.init agents Fun.id) in
      let lot = List.nth order (Int64.to_int (Int64.unsigned_rem (word lots) (Int64.of_int agents))) in
      let weight agent arm = number (weights + before agent + arm) in
      let rec arm_at agent arm place =   (* in the list in which each arm stands as often as its weight *)
        if place < weight agent arm then arm else arm_at agent (arm + 1) (place - weight agent arm) in
      let holds agent draw =
        let places = List.fold_left (+) 0 (List.init (number (arms + agent)) (weight agent)) in
        arm_at agent 0 (int_of_float (uniform (drawn + agent * (draws + 1) + draw) *. float_of_int places)) in
      let coin slot pull =
        let agent, draw = List.nth order (slot mod agents), slot / agents in
        uniform (coins + (agent * draws + draw) * pulls + pull) < float_of_string given.(rewards + slot * pulls + pull) in
      let serve = Loop_that_runs.serve pulls draws (number 2) (number 3 = 1) order lot coin in
      let served = Loop_that_runs.served pulls draws (number 2) (number 3 = 1) order lot coin holds in
      let shown round =
        let agent, arm = served round in
        Printf.sprintf "%d:%d:%s" agent arm (if snd (serve round) = None then "award" else "trial") in
      print_endline (String.concat " " (List.init (number 4) shown))
    done
  with End_of_file -> ()
