package generate

// state is a state or union territory of a made-up company.
type state struct {
	code      string // of the CIN
	name      string
	registrar string
	pin       string // first two digits of its pincodes
}

// states by their share of companies.
var states = []share[state]{
	{state{"MH", "Maharashtra", "Mumbai", "40"}, 19.1},
	{state{"DL", "Delhi", "Delhi", "11"}, 14.2},
	{state{"WB", "West Bengal", "Kolkata", "70"}, 8.9},
	{state{"UP", "Uttar Pradesh", "Kanpur", "22"}, 8.5},
	{state{"KA", "Karnataka", "Bangalore", "56"}, 7.9},
	{state{"TG", "Telangana", "Hyderabad", "50"}, 7.2},
	{state{"TN", "Tamil Nadu", "Chennai", "60"}, 6.9},
	{state{"GJ", "Gujarat", "Ahmedabad", "38"}, 5.6},
	{state{"HR", "Haryana", "Delhi", "12"}, 3.8},
	{state{"KL", "Kerala", "Ernakulam", "68"}, 3.3},
	{state{"RJ", "Rajasthan", "Jaipur", "30"}, 3.2},
	{state{"MP", "Madhya Pradesh", "Gwalior", "46"}, 2.4},
	{state{"BR", "Bihar", "Patna", "80"}, 2.2},
	{state{"AP", "Andhra Pradesh", "Vijayawada", "52"}, 1.9},
	{state{"OR", "Odisha", "Cuttack", "75"}, 1.6},
	{state{"PB", "Punjab", "Chandigarh", "14"}, 1.5},
	{state{"AS", "Assam", "Guwahati", "78"}, 0.8},
	{state{"JH", "Jharkhand", "Ranchi", "83"}, 0.8},
	{state{"CT", "Chhattisgarh", "Chhattisgarh", "49"}, 0.7},
	{state{"UR", "Uttarakhand", "Uttarakhand", "24"}, 0.6},
	{state{"CH", "Chandigarh", "Chandigarh", "16"}, 0.5},
	{state{"GA", "Goa", "Goa", "40"}, 0.4},
	{state{"JK", "Jammu & Kashmir", "Jammu", "18"}, 0.4},
	{state{"HP", "Himachal Pradesh", "Himachal Pradesh", "17"}, 0.3},
	{state{"PY", "Pondicherry", "Pondicherry", "60"}, 0.2},
	{state{"MN", "Manipur", "Shillong", "79"}, 0.1},
	{state{"ML", "Meghalaya", "Shillong", "79"}, 0.1},
}

var stateShares = newShares(states)

// firstYear begins years.
const firstYear = 1947

// years is the number of companies in the official files incorporated in each year from
// firstYear on. The last year is incomplete.
var years = []int{8, 5, 12, 7, 7, 5, 2, 3, 7, 10, 9, 10, 10, 13, 18, 22, 64, 26, 58, 72, 25, 26, 38, 39, 63, 59, 78, 77, 90,
	88, 68, 88, 79, 128, 229, 231, 283, 329, 407, 387, 485, 543, 396, 316, 395, 458, 514, 648, 839, 718, 745, 586, 596, 644, 474,
	420, 580, 864, 1171, 1228, 1282, 1146, 1046, 1236, 1268, 1370, 1349, 941, 1120, 1334, 1697, 2103, 2309, 2620, 3568, 3792,
	3827, 4075, 1781}

// lastDay is the last date of incorporation, and the date of the files.
const lastDay = "2025-05-05"

// olderDay is the date of the files in format B.
const olderDay = "2021-03-31"
