; --- enemies -----------------------------------------------------------------------------------------------
enemies:
  LDX #7
enemy:
  LDA etype,x
  BEQ next
  JSR wander
  JSR fight
next:
  DEX
  BPL enemy
  RTS

wander:
  TXA
  EOR frame
  LSR
  BCS rest
  DEC etimer,x
  BNE ahead_of_it
  JSR random
  AND #3
  STA edir,x
  JSR random
  AND #$1F
  ORA #8
  STA etimer,x
ahead_of_it:
  LDY edir,x
  LDA ex,x
  CLC
  ADC step_x,y
  STA newx
  CMP #16
  BCC turn
  CMP #224
  BCS turn
  LDA ey,x
  CLC
  ADC step_y,y
  STA newy
  CMP #72
  BCC turn
  CMP #208
  BCS turn
  STX index
  LDX #4
  JSR tile_at
  LDX index
  CMP #$80
  BCS turn
  LDA newx
  STA ex,x
  LDA newy
  STA ey,x
rest:
  RTS
turn:
  LDA #1
  STA etimer,x
  RTS

fight:
  LDA sword
  CMP #8
  BNE bite
  LDA ex,x
  SEC
  SBC swordx
  JSR absolute
  CMP #14
  BCS bite
  LDA ey,x
  SEC
  SBC swordy
  JSR absolute
  CMP #14
  BCS bite
  DEC ehp,x
  BNE bite
  LDA #0
  STA etype,x
  DEC alive
  INC kills
  INC gems
  RTS
bite:
  LDA hurt
  BNE peace
  LDA ex,x
  SEC
  SBC px
  JSR absolute
  CMP #11
  BCS peace
  LDA ey,x
  SEC
  SBC py
  JSR absolute
  CMP #11
  BCS peace
  LDA #48
  STA hurt
  DEC hp
  BNE peace
  LDA #4
  STA mode
peace:
  RTS

random:
  LDA seed
  ASL
  BCC no_tap
  EOR #$1D
no_tap:
  STA seed
  EOR frame
  RTS

; --- sprites: player, sword, thing, enemies ----------------------------------------------------------------
sprites:
  LDA facing
  ASL
  ASL
  ORA #1
  STA index
  LDA px
  STA newx
  LDA py
  STA newy
  LDY #0
  LDA #0
  JSR pair
  LDA #$F8
  STA oam+8
  LDA sword
  BEQ no_blade
  LDA swordy
  STA oam+8
  LDA #$21
  STA oam+9
  LDA #1
  STA oam+10
  LDA swordx
  CLC
  ADC #4
  STA oam+11
no_blade:
  LDY #12
  LDA #$F8
  STA oam+12
  STA oam+16
  LDA itemtype
  BEQ no_thing
  LDA #$25
  STA index
  LDA itemx
  STA newx
  LDA itemy
  STA newy
  LDA #1
  JSR pair
no_thing:
  LDY #20
  LDX #0
draw:
  LDA #$F8
  STA oam,y
  STA oam+4,y
  LDA etype,x
  BEQ drawn
  ASL
  ASL
  CLC
  ADC #$0D
  STA index
  LDA ex,x
  STA newx
  LDA ey,x
  STA newy
  LDA #2
  JSR pair
  JMP skipped
drawn:
  TYA
  CLC
  ADC #8
  TAY
skipped:
  INX
  CPX #8
  BNE draw
  RTS

; Two sprites side by side at newx, newy with the tiles from index on and colours A; moves Y on.
pair:
  STA oam+2,y
  STA oam+6,y
  LDA newy
  STA oam,y
  STA oam+4,y
  LDA newx
  STA oam+3,y
  CLC
  ADC #8
  STA oam+7,y
  LDA index
  STA oam+1,y
  CLC
  ADC #2
  STA oam+5,y
  TYA
  CLC
  ADC #8
  TAY
  RTS

; --- tables ------------------------------------------------------------------------------------------------
walk_x:   .byte 0, 0, 254, 2
walk_y:   .byte 254, 2, 0, 0
step_x:   .byte 0, 0, 255, 1
step_y:   .byte 255, 1, 0, 0
reach_x:  .byte 0, 0, 244, 12
reach_y:  .byte 244, 12, 0, 0
corner_x: .byte 6, 9, 6, 9, 8
corner_y: .byte 6, 6, 9, 9, 8
places_x: .byte 32, 200, 112, 112, 88, 168, 112, 128
places_y: .byte 144, 144, 96, 200, 144, 144, 128, 176

palette:
  .byte $0F,$1A,$29,$39, $0F,$17,$27,$37, $0F,$11,$21,$31, $0F,$06,$16,$26
  .byte $0F,$30,$27,$19, $0F,$30,$28,$16, $0F,$06,$26,$30, $0F,$00,$10,$30

words_title:
  .byte $21,$6B,'O','V','E','R','W','O','R','L','D',0
  .byte $22,$4D,'S','T','A','R','T',0,0
words_menu:
  .byte $21,$6E,'M','E','N','U',0
  .byte $21,$EE,'S','L','O','T',0
  .byte $22,$4D,'S','T','A','R','T',0,0

noise:
NOISE

.org $FFFA
.word nmi, reset, reset
