(* Reads cases, one a line, and prints who is served in each round, "agent:arm:trial .. agent:arm:award", or on each page,
   place by place: "agent:arm:trial,agent:arm:trial ..". What the definitions take as given is made of 64-bit words of
   random streams here, and not taken from the session.
   A case of rounds: places (0), pulls draws threshold fresh rounds agents, the arms of each agent, the weight of each arm
   of each agent; words, one of each agent for the order, one for the lot, draws + 1 of each agent, one for each pull of
   each draw of each agent; the rewards of all tests, slot by slot.
   A case of pages: places, views draws ranks 0 pages agents, arms and weights as above; words, one of each agent for the
   order, draws of each agent, one for each page of each agent; the attention of each place; clicks (0 or 1) of each agent
   on each page, if it is shown. *)
let () =
  try
    while true do
      let given = Array.of_list (String.split_on_char ' ' (input_line stdin)) in
      let number k = int_of_string given.(k) and word k = Int64.of_string ("0u" ^ given.(k)) in
      let uniform k = (Int64.to_float (Int64.shift_right_logical (word k) 12) +. 0.5) *. ldexp 1.0 (-52) in
      let places, pulls, draws, rounds, agents = number 0, number 1, number 2, number 5, number 6 in
      let arms = 7 in
      let before agent = List.fold_left (+) 0 (List.init agent (fun i -> number (arms + i))) in
      let weights = arms + agents in
      let orders = weights + before agents in
      let order =
        let by_word i j = Int64.unsigned_compare (word (orders + i)) (word (orders + j)) in
        List.sort by_word (List.init agents Fun.id) in
      let weight agent arm = number (weights + before agent + arm) in
      let rec arm_at agent arm place =   (* in the list in which each arm stands as often as its weight *)
        if place < weight agent arm then arm else arm_at agent (arm + 1) (place - weight agent arm) in
      let arm_of agent word =
        let listed = List.fold_left (+) 0 (List.init (number (arms + agent)) (weight agent)) in
        arm_at agent 0 (int_of_float (uniform word *. float_of_int listed)) in
      let shown agent arm phase = Printf.sprintf "%d:%d:%s" agent arm phase in
      let rounds_of_one () =
        let lots = orders + agents in
        let drawn = lots + 1 in
        let coins = drawn + agents * (draws + 1) in
        let rewards = coins + agents * draws * pulls in
        let lot = List.nth order (Int64.to_int (Int64.unsigned_rem (word lots) (Int64.of_int agents))) in
        let holds agent draw = arm_of agent (drawn + agent * (draws + 1) + draw) in
        let coin slot pull =
          let agent, draw = List.nth order (slot mod agents), slot / agents in
          uniform (coins + (agent * draws + draw) * pulls + pull) < float_of_string given.(rewards + slot * pulls + pull) in
        fun t ->
          let serve = Loop_that_runs.serve pulls draws (number 3) (number 4 = 1) order lot coin in
          let agent, arm = Loop_that_runs.served pulls draws (number 3) (number 4 = 1) order lot coin holds t in
          shown agent arm (if snd (serve t) = None then "award" else "trial") in
      let pages () =
        let ranks, drawn = number 3, orders + agents in
        let thinning = drawn + agents * draws in
        let attentions = thinning + agents * rounds in
        let clicks = attentions + places in
        let attention place = float_of_string given.(attentions + place) in
        let clicked agent t = number (clicks + agent * rounds + t) = 1 in
        let click agent draw t = clicked agent (draw * agents * pulls + t) in
        let last, ranks_end = attention (min places agents - 1), agents * (draws * pulls + ranks) in
        let known = Hashtbl.create 97 in
        let rec place agent t =
          match Hashtbl.find_opt known (agent, t) with
          | Some found -> found
          | None ->
            let found = Loop_that_runs.place draws pulls ranks order places click later agent t in
            Hashtbl.add known (agent, t) found; found
        and later agent _ t =   (* a click in a better place counts with the chance that makes places alike *)
          clicked agent t && (t < ranks_end ||
            match place agent t with
            | Some k -> attention k = last || uniform (thinning + agent * rounds + t) *. attention k < last
            | None -> false) in
        fun t ->
          let who k = List.find (fun agent -> place agent t = Some k) order in
          let seat agent =
            let draw = Loop_that_runs.shown_draw draws pulls order places click agent t in
            shown agent (arm_of agent (drawn + agent * draws + draw)) (if t < ranks_end then "trial" else "award") in
          String.concat "," (List.init (min places agents) (fun k -> seat (who k))) in
      print_endline (String.concat " " (List.init rounds (if places = 0 then rounds_of_one () else pages ())))
    done
  with End_of_file -> ()
