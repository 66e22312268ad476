package names

import "slices"

// synonymous are words that names and queries have for the same: numbers, and cities before and after they were
// renamed.
var synonymous = [...][]string{
	{"1", "one"}, {"2", "two"}, {"3", "three"}, {"4", "four"}, {"5", "five"}, {"6", "six"}, {"7", "seven"}, {"8", "eight"},
	{"9", "nine"}, {"10", "ten"}, {"100", "hundred"}, {"1st", "first"}, {"2nd", "second"}, {"3rd", "third"},
	{"bombay", "mumbai"}, {"madras", "chennai"}, {"calcutta", "kolkata"}, {"baroda", "vadodara"}, {"poona", "pune"},
	{"pondicherry", "puducherry", "pondy"}, {"bangalore", "bengaluru"}, {"gurgaon", "gurugram"}, {"simla", "shimla"},
	{"orissa", "odisha"}, {"om", "aum"},
}

// shortened are the first words of each list, which people write for one of the others. Names are not made
// longer by them, as by those of long, which are certain.
var shortened = [...][]string{
	{"inds", "industries"}, {"engrs", "engineers"}, {"svcs", "services"}, {"soln", "solutions"},
	{"const", "construction", "constructions"}, {"fpc", "producer"}, {"fpo", "producer"},
}

// synonyms returns the words that a typed word may stand for, nil if it is only itself.
func synonyms(typed string) []string {
	for _, words := range synonymous {
		if slices.Contains(words, typed) {
			return words
		}
	}
	for _, words := range shortened {
		if words[0] == typed {
			return words
		}
	}
	return nil
}
